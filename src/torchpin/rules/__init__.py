"""Floor 3: rules turn selections and verdicts into findings."""
