#!/usr/bin/python3
"""Every way to compress gradients on the same run: bytes, time on slow networks, accuracy.

Trains sixteen_epochs.textproto on 64 pixels, from the same weights on the same images in the same order, on
several ranks; once for accuracy on this machine, and a few steps in network namespaces of each speed (which takes
root; --rates= leaves them out). All with SGD; DGC keeps its Nesterov momentum itself, so that the optimizer has none.

  apps/studies/compression.py --data FOLDER [--schemes dense,bf16,hylo] [--epochs 5] [--rates 1gbit,100mbit]
"""
import argparse

import study

# Name and overrides. No gate: small layers, too. The other Hylo ablations: one rate for all layers,
# MXNet's fixed threshold (for means; here gradients are sums over the 16 images of a rank), nothing
# kept.
SCHEME = 'dist.compression.scheme.'
DGC = [SCHEME + 'dgc.nesterov=true', 'optim.sgd={}', 'optim.sgd.momentum=0']
NO_GATE = ['dist.compression.min_elements=0']
SCHEMES = {
    'dense': [],
    'bf16': [SCHEME + 'bf16={}'],
    'fp16': [SCHEME + 'fp16={}'],
    'linear8': [SCHEME + 'linear8={}'],
    'qsgd': [SCHEME + 'qsgd={}'],
    'terngrad': [SCHEME + 'terngrad={}'],
    'one_bit': [SCHEME + 'one_bit={}'],
    'sign': [SCHEME + 'sign={}'],
    'sign_vote': [SCHEME + 'sign.majority_vote=true'],
    'two_bit': [SCHEME + 'two_bit={}'],
    'two_bit_fixed': [SCHEME + 'two_bit.threshold=0.5'],
    'top_k': [SCHEME + 'top_k.density=0.01'],
    'top_k_thousandth': [SCHEME + 'top_k.density=0.001', SCHEME + 'top_k.values=BF16'],
    'random_k': [SCHEME + 'random_k.density=0.01'],
    'dgc': DGC,
    'dgc_100': DGC + NO_GATE + [SCHEME + 'dgc.values=BF16', 'dist.compression.rule={ max_elements: 9999 scheme { '
                                'dgc { density: 0.01 nesterov: true values: BF16 } } }'],
    'power_sgd': [SCHEME + 'power_sgd.rank=2'],
    'hylo': [SCHEME + 'hylo={}'],
    'hylo_no_gate': [SCHEME + 'hylo={}'] + NO_GATE,
    'hylo_uniform': [SCHEME + 'hylo.convolution.power=0', SCHEME + 'hylo.convolution.max_rate=0.15'],
    'hylo_fixed_threshold': [SCHEME + 'hylo.linear.threshold=0.5'],
    'hylo_no_feedback': [SCHEME + 'hylo={}', 'dist.compression.error_feedback=false'],
}
# Without its warm-up, where only speed matters.
AT_ONCE = dict.fromkeys(['dgc', 'dgc_100'], [SCHEME + 'dgc.warm_up=false'])
SAME = study.SGD + ['optim.ema_decay=0.999', 'train.accumulation=1', 'data.image_size=64', 'train.phase=',
                    'train.evaluation_image_size=64', 'data.workers=1', 'train.log_every_steps=1000000',
                    'dist.compression.fall_back=false', 'dist.compression.guard_every_steps=0']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--schemes', default=','.join(SCHEMES))
    parser.add_argument('--ranks', type=int, default=4)
    parser.add_argument('--batch', type=int, default=16, help='of each rank')
    parser.add_argument('--epochs', type=float, default=5)
    parser.add_argument('--rates', default='1gbit,100mbit')
    parser.add_argument('--steps', type=int, default=12, help='at each rate')
    parser.add_argument('--config', default=study.SIXTEEN_EPOCHS)
    args = parser.parse_args()
    rates = [rate for rate in args.rates.split(',') if rate]
    print(f'| scheme | MB sent a step | ratio | {"".join(f"step at {r}, ms | " for r in rates)}encode, decode, ms | '
          'accuracy |')
    print('|---|---|---|' + '---|' * len(rates) + '---|---|', flush=True)
    dense_bytes = None
    for name in args.schemes.split(','):
        overrides = SAME + [f'train.batch={args.batch}'] + SCHEMES[name]
        run = study.train(args, args.config, overrides + [f'train.epochs={args.epochs}',
                                                          f'train.evaluate_every_epochs={args.epochs}'], args.ranks)
        few = [f'train.epochs={args.steps * args.epochs / len(run.steps)}', 'train.evaluate_every_epochs=1000']
        # The last steps: warm-up of DGC and the like is over.
        run.steps = run.steps[-max(len(run.steps) // 5, 2 * study.WARM_UP_STEPS):]
        sent = run.sent_bytes()
        dense_bytes = dense_bytes or sent
        times = []
        for rate in rates:
            short = study.train(args, args.config, overrides + AT_ONCE.get(name, []) + few, args.ranks, rate)
            times.append(f'{short.median("step_ms"):.0f}')
        ratio = f'{dense_bytes / sent:.1f}' if sent else ''  # one rank sends nothing
        print(f'| {name} | {sent / 1e6:.2f} | {ratio} | {"".join(t + " | " for t in times)}'
              f'{run.median("encode_ms"):.1f}, {run.median("decode_ms"):.1f} | {study.percent(run.accuracy())} |',
              flush=True)


if __name__ == '__main__':
    main()
