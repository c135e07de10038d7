"""`clnorm.cl.main()`: the tool clnorm, as `python -m clnorm` runs it."""

from clnorm.__main__ import main as main

if __name__ == "__main__":
    main()
