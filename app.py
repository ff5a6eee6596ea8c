"""Entry of the app: navigation, nothing else. Start it with `streamlit run app.py`.

The heavy libraries are imported here, before any page: Streamlit runs this script when the first
visitor comes, and first imports inside pages, in sessions that start together, race and fail.
"""

import numpy  # noqa: F401
import pandas  # noqa: F401
import plotly  # noqa: F401

from tinyllm.ui import navigation

navigation.run()
