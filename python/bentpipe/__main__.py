"""``python -m bentpipe`` is the command ``bentpipe``."""

from ._command import main

raise SystemExit(main())
