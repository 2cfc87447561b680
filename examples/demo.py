"""A small replica-exchange run on the embedded images: M3 on D_50 at sixteen temperatures, in a few minutes."""

import sys
import time

import numpy as np

import tempernet as tn

started = time.perf_counter()


def show(phase: str, done: int, total: int) -> None:
    """Print a line every ten rounds."""
    if done % 10 == 0 or done == total:
        print(f"  {phase} {done}/{total}, {time.perf_counter() - started:.0f} s", file=sys.stderr)


data = tn.mnist16().split(n_train=50)
target = tn.Target.classifier(tn.M3, data.train, tn.UniformBox.for_network(tn.M3, factor=50))
samples = tn.sample(
    target,
    tn.geometric_temperatures(1, 10, 16),
    rounds=40,
    burn_in=30,
    copies=2,
    test=data.test,
    tuning=tn.Tuning(search_trajectories=16, check_trajectories=24, max_checks=2),
    progress_fn=show,
)
train, train_error = samples.train_loss
test, test_error = samples.test_loss
accuracy, _ = samples.test_accuracy
print(f"M3 on D_50, {len(data.test)} test images, 2 copies started apart (an uninformed classifier has a loss of")
print(f"{tn.uninformed_loss(data.classes):.3f}); losses are means an example, with the standard error over copies")
print("      T   train loss        test loss         accuracy  acceptance  dt")
for k, temperature in enumerate(samples.temperatures):
    print(
        f"{temperature:7.3g}   {train[k]:6.3f} ± {train_error[k]:5.3f}    {test[k]:6.3f} ± {test_error[k]:5.3f}"
        f"    {accuracy[k]:.3f}     {samples.acceptance[:, :, k].mean():.2f}        {samples.time_steps[k]:.2g}"
    )
print("swaps accepted between neighbours:", np.array2string(samples.swap_rate, precision=2))
