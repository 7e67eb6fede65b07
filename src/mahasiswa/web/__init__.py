"""The web application: routes, pages and middleware."""
