"""Host tools of the shaker; start reading at __main__.py."""
