"""The folder of a run: see store/folder.py, where those who read it find it too."""

from headgate.store.folder import Folder, rename_whole, write_whole

__all__ = ["Folder", "rename_whole", "write_whole"]
