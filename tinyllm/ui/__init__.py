"""The only part that imports streamlit: controls, components, state and the frame of a page.

Pages are thin and call this package; experiments and the engine know nothing of it.
"""
