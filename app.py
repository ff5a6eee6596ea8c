"""Entry of the app: navigation, nothing else. Start it with `streamlit run app.py`.

The heavy libraries are imported here, before any visitor comes: first imports inside sessions
that start together race and fail.
"""

import numpy  # noqa: F401
import pandas  # noqa: F401
import plotly  # noqa: F401

from tinyllm.ui import navigation

navigation.run()
