"""Training by hand in numpy: corpus, network with its way back, optimiser, loop, distillation.

Makes the models in assets/models/. Inference never imports it.
"""
