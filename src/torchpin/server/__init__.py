"""The language server: diagnostics, fixes, hover and completion in an editor (floor 6).

It reads what the editor holds, never writes a file, and judges by the same engine as ``check``.
"""
