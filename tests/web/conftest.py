"""Fixtures of the tests in a browser. A module that needs another `site` or `service` defines its own."""

from browser import empty_site, install_node_modules, one_window, path_of_axe, start_chromium, window_opener

__all__ = ["empty_site", "install_node_modules", "one_window", "path_of_axe", "start_chromium", "window_opener"]
