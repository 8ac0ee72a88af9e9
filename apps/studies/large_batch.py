#!/usr/bin/python3
"""How large a batch may become: the same network, images and epochs at several batch sizes and by several recipes.

  plain     the learning rate of the reference batch, whatever the batch
  scaled    times batch / reference, and warm-up from the reference's rate (Goyal et al. 2017)
  grown     begins with the reference batch, and grows to the batch where the rate would fall (Smith et al. 2018)
  lars      a rate for each layer (You et al. 2017), times the square root; warm-up, polynomial decay
  muon      the same with orthogonal steps (Jordan et al. 2024)

Large batches are computed in parts (train.accumulation), which one machine does as several ranks would.

  apps/studies/large_batch.py --data FOLDER [--batches 64,256,1024,2048] [--epochs 12] [--rate 0.1] [--seed 1]
"""
import argparse
import os

import study

REFERENCE_BATCH = 64
PART = 64  # images of a forward pass, so that batch norm sees the same at every batch size


def in_parts(batch):
    return [f'train.batch={batch}', f'train.accumulation={max(batch // PART, 1)}']


# Of LARS and Muon: biases and batch norms take the rate as it is, weights times trust and norm(w) /
# norm(step).
BY_LAYER = ['optim.learning_rate=0.7', 'optim.batch_scaling.rule=SQUARE_ROOT',
            f'optim.batch_scaling.reference_batch={REFERENCE_BATCH}', 'optim.warmup.epochs=1', 'optim.polynomial.power=1']
# From the batch, and the rate of plain SGD at the reference batch.
RECIPES = {
    'plain': lambda batch, rate: in_parts(batch) + study.SGD + [f'optim.learning_rate={rate}'],
    'scaled': lambda batch, rate: in_parts(batch) + study.SGD + [
        f'optim.learning_rate={rate}', 'optim.batch_scaling.rule=LINEAR',
        f'optim.batch_scaling.reference_batch={REFERENCE_BATCH}', 'optim.warmup.epochs=3'],
    'grown': lambda batch, rate: in_parts(REFERENCE_BATCH) + study.SGD + [
        f'optim.learning_rate={rate}', f'optim.batch_growth.max_batch={batch}'],
    'lars': lambda batch, _: in_parts(batch) + BY_LAYER + ['optim.lars.trust=0.005'],
    'muon': lambda batch, _: in_parts(batch) + BY_LAYER + ['optim.muon={}'],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--config', default=study.SIXTEEN_EPOCHS)
    parser.add_argument('--batches', default='64,256,1024,2048')
    parser.add_argument('--recipes', default=','.join(RECIPES))
    parser.add_argument('--epochs', type=float, default=12)
    parser.add_argument('--rate', type=float, default=0.1, help='of plain SGD at the reference batch')
    parser.add_argument('--image-size', type=int, default=48)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    args = parser.parse_args()
    recipes = args.recipes.split(',')
    print('| batch | ' + ''.join(recipe + ': accuracy, steps | ' for recipe in recipes))
    print('|---|' + '---|' * len(recipes), flush=True)
    for batch in map(int, args.batches.split(',')):
        cells = []
        for recipe in recipes:
            overrides = [f'data.image_size={args.image_size}', 'train.phase=',
                         f'train.evaluation_image_size={args.image_size}',
                         'train.log_every_steps=1000000', 'optim.ema_decay=0', f'train.seed={args.seed}',
                         f'train.evaluation_batch={PART}', f'train.epochs={args.epochs}',
                         f'train.evaluate_every_epochs={args.epochs}'] + RECIPES[recipe](batch, args.rate)
            run = study.train(args, args.config, overrides, threads=args.threads)
            cells.append(f'{study.percent(run.accuracy())}, {len(run.steps)}')
        print(f'| {batch} | ' + ''.join(cell + ' | ' for cell in cells), flush=True)


if __name__ == '__main__':
    main()
