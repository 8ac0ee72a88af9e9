"""What local_rounds.py measures: cells, each a training run of the emulator, and the tables that they make.

A cell's name is its file's name, so that tables share cells. Tables come in the order in which they are made; `first` has
overlapped rounds in 8 bits, of which dist.plan: AUTO takes none.
"""
import dataclasses
import itertools

GLOBAL_BATCH = 64  # of tables in which it stays the same whatever the ranks
IMAGES, FULL_IMAGES = 10_000, 20_000
MEAN = '1:0'  # outer rate and momentum of the plain mean
# The rates follow the batch of a step (or that of all ranks: rate_batch) from the one that they were found with.
OPTIMIZERS = {
    'muon': ['optim.batch_scaling.reference_batch=256'],
    'sgd': ['optim.sgd.momentum=0.9', 'optim.sgd.nesterov=true', 'optim.learning_rate=0.1',
            'optim.batch_scaling.rule=LINEAR', 'optim.batch_scaling.reference_batch=64'],
}


def top_k(density, small='linear8 {}'):
    """The largest of large layers; small ones, which would else be most of what travels, in 8 bits."""
    return [f'scheme.top_k.density={density}', 'scheme.top_k.values=BF16', 'min_elements=1000',
            f'rule={{max_elements: 9999 scheme {{ {small} }} }}']


def in_turns(density, every, statistics=8, values='LEVELS4'):
    """Large layers in 15 bits an element that travels; the others, vectors too, in 8 bits but not in every step."""
    return [f'scheme.top_k.density={density}', f'scheme.top_k.values={values}', 'min_elements=1', 'route=SHARDED',
            f'rule={{max_elements: 9999 scheme {{ linear8 {{}} }} every_steps: {every}}}, '
            f'{{kind: VECTOR scheme {{ linear8 {{}} }} every_steps: {every}}}', f'statistics_every_steps={statistics}']


def all_coded(density, vectors='bf16 {}', small='linear8 {}', statistics=4, sums=0, rounds=False):
    """Nothing travels dense, and a bucket in one exchange; large layers in 13 bits an element that travels."""
    of_steps = [] if rounds else ['fall_back=false', f'statistics_every_steps={statistics}']
    return [f'scheme.top_k.density={density}', 'scheme.top_k.values=LEVELS8', f'scheme.top_k.sum_density={sums}', 'min_elements=1',
            'route=SHARDED', f'rule={{kind: VECTOR scheme {{ {vectors} }}}}, {{max_elements: 9999 scheme {{ {small} }}}}',
            'guard_every_steps=1000', *of_steps]


TOP_K_1 = all_coded(0.01, sums=0.02)  # what plans call "top_k 1%" (apps/plan/measure_facts.cc)
# With a fifth of small layers, which in 8 bits are half of what travels.
TOP_K_1_SMALL = all_coded(0.01, 'linear8 {}', 'top_k { density: 0.2 values: LEVELS8 }', statistics=8)

# Gradients in every step. dist.plan: AUTO takes dense ones and PLANNED_GRADIENTS.
GRADIENT_CODINGS = {
    'f32': [], 'linear8': ['scheme.linear8={}'], 'hylo': ['scheme.hylo={}'], 'top_k_1': top_k(0.01),
    'top_k_1_levels': all_coded(0.01), 'top_k_1_small': TOP_K_1_SMALL,
    'top_k_2_levels': all_coded(0.02), 'top_k_1_sums': TOP_K_1, 'top_k_1_sums4': all_coded(0.01, sums=0.04),
    'top_k_03': top_k(0.003), 'top_k_01': top_k(0.001), 'top_k_003': top_k(0.0003),
    'top_k_01_dense': ['scheme.top_k.density=0.001', 'scheme.top_k.values=BF16'],
    'top_k_01_2': top_k(0.001, 'top_k { density: 0.02 values: BF16 }'), 'top_k_01_one_bit': top_k(0.001, 'one_bit {}'),
    'turns_01_4': in_turns(0.001, 4), 'turns_007_16': in_turns(0.0007, 16), 'turns_003_4': in_turns(0.0003, 4),
}
PLANNED_GRADIENTS = ['linear8', 'hylo', 'top_k_1_sums']  # dist/planner/shown_choices.h
# Of the changes that rounds exchange.
CODINGS = {
    'f32': [], 'linear8': ['scheme.linear8={}'], 'linear4': ['scheme.linear4={}'], 'top_k_1': ['scheme.top_k.density=0.01'],
    'top_k_1_all': all_coded(0.01, sums=0.02, rounds=True),
}


def split(train_last, validation_last):
    """Of each class, images 0 .. train_last, and those after them."""
    return ['data.split.train.first=0', f'data.split.train.last={train_last}', f'data.split.validation.first={train_last + 1}',
            f'data.split.validation.last={validation_last}']


SHORT = ['data.image_size=64', 'train.phase=', 'train.evaluation_image_size=64'] + split(4999, 9999)
FULL = split(9999, 11249)  # and the default config as it is
FULL_PIXELS = (6 * 64**2 + 6 * 96**2 + 4 * 128**2) / 16 / 64**2  # mean over its epochs, in those of 64 pixels
PART = 64  # images that a worker computes at once: its caches hold them


@dataclasses.dataclass(frozen=True)
class Cell:
    optimizer: str = 'muon'
    ranks: int = 8
    steps: str = 'dense'  # H; dense: gradients are added up in every step
    outer: str = MEAN
    rate_batch: str = 'ALL_RANKS'  # with that of SGD, H = 1 is what dense steps do
    overlapped: bool = False
    coding: str = 'f32'
    gradients: str = 'f32'  # coding of dense steps
    batch: int = 0  # of a rank; 0: GLOBAL_BATCH / ranks
    sharded: bool = False  # each rank meets a part of the images of its own
    full: bool = False
    epochs: float = 12
    seed: int = 1

    @property
    def name(self):
        name = f'{self.optimizer}-{self.ranks}-{self.steps}-{self.outer}-{self.rate_batch}-{self.seed}'.replace(':', '_')
        for shown, text in ((self.overlapped, 'overlapped'), (self.coding != 'f32', self.coding),
                            (self.gradients != 'f32', f'gradients_{self.gradients}'), (self.batch, f'batch{self.batch}'), (self.sharded, 'sharded'),
                            (self.full, 'full')):
            name += f'-{text}' if shown else ''
        return name if self.epochs == (16 if self.full else 12) else f'{name}-epochs{self.epochs:g}'

    @property
    def rank_batch(self):
        return self.batch or GLOBAL_BATCH // self.ranks

    def overrides(self):
        rounds = []
        if self.steps != 'dense':
            rate, momentum = self.outer.split(':')
            rounds = [f'dist.local.period={self.steps}', f'dist.local.outer_learning_rate={rate}',
                      f'dist.local.outer_momentum={momentum}', f'dist.local.rate_batch={self.rate_batch}',
                      f'dist.local.overlap={str(self.overlapped).lower()}']
            if CODINGS[self.coding]:
                rounds += [f'dist.local.compression.{field}' for field in CODINGS[self.coding] + ['fall_back=false']]
            else:
                rounds += ['dist.local.min_cosine=-1']  # a cell's H is its own to the end, as it is behind codecs
        rounds += [f'dist.compression.{field}' for field in GRADIENT_CODINGS[self.gradients]]
        rounds += [f'data.shards={self.ranks}'] if self.sharded else []
        return (FULL if self.full else SHORT) + rounds + OPTIMIZERS[self.optimizer] + [
            f'train.batch={self.rank_batch}', f'train.accumulation={max(1, self.rank_batch // PART)}', f'train.epochs={self.epochs:g}',
            f'train.evaluate_every_epochs={1 if self.full else self.epochs:g}', f'train.seed={self.seed}']

    def seconds(self):
        """Estimate, of one core: see COSTS."""
        images = (FULL_IMAGES if self.full else IMAGES) * self.epochs
        steps = images / (self.rank_batch * self.ranks)
        updates = steps * (1 if self.steps == 'dense' else self.ranks)
        rounds = 0 if self.steps == 'dense' else steps / int(self.steps) * self.ranks
        pixels = FULL_PIXELS if self.full else 1
        small = 1 + COSTS['small_batch'] / self.rank_batch
        ends = COSTS['round_s'] if self.coding == 'f32' else COSTS['coded_round_s']
        evaluations = COSTS['evaluation_s'] * (self.epochs * FULL_EVALUATION if self.full else 1)
        return (images * COSTS['image_s'] * small * pixels + updates * COSTS[self.optimizer + '_s'] + rounds * ends + evaluations +
                COSTS['reading_s'])


# Seconds of one core of a Zen 5, from cells of 0.3 and 0.6 epochs with 8 and 64 images a rank (2026-11-23): passes of an image in
# large batches, and by how many images a small batch costs more; a rank's update; a rank's end of a round; 10,000 images of
# 64 pixels evaluated, and all read (13 s, divided by what a pass takes). local_rounds.py scales the sum by what finished cells took.
COSTS = {'image_s': 0.0014, 'small_batch': 5.7, 'muon_s': 0.055, 'sgd_s': 0.002, 'round_s': 0.008, 'coded_round_s': 0.033,
         'evaluation_s': 4.5, 'reading_s': 8.5}
FULL_EVALUATION = 2500 / 10000 * 128**2 / 64**2 * 2  # of both mirror images, in evaluations of a short cell


def settings_for(cell, settings):
    """Those of --set but for fields of other update rules, which would switch the cell to them."""
    others = tuple(f'optim.{rule}.' for rule in OPTIMIZERS if rule != cell.optimizer)
    return [setting for setting in settings if not setting.startswith(others)]


def with_dense(cells):
    """The dense cell of the same ranks, batch and optimizer before the others."""
    cells = list(cells)
    dense = [dataclasses.replace(cell, steps='dense', outer=MEAN, rate_batch='ALL_RANKS', overlapped=False, coding='f32', gradients='f32')
             for cell in cells]
    return list(dict.fromkeys(dense + cells))


def product(**choices):
    for values in itertools.product(*choices.values()):
        yield Cell(**dict(zip(choices, values)))


# What trains the full recipe, whose rate is that of 256 images; batch and accumulation of `alone` and `untouched` are the default config's.
MODES = {
    'alone': Cell(ranks=1, batch=256),
    'untouched': Cell(ranks=8, batch=256),
    'dense32': Cell(ranks=8, batch=32),
    'dense64': Cell(ranks=8, batch=64),
    'top_k32': Cell(ranks=8, batch=32, gradients='top_k_01'),
    'top_k64': Cell(ranks=8, batch=64, gradients='top_k_01'),
    'top_k_03_32': Cell(ranks=8, batch=32, gradients='top_k_03'),
    'top_k_1_32': Cell(ranks=8, batch=32, gradients='top_k_1'),
    'top_k_1_levels_32': Cell(ranks=8, batch=32, gradients='top_k_1_levels'),
    'top_k_1_sums': Cell(ranks=8, batch=32, gradients='top_k_1_sums'),
    'top_k_2_levels_32': Cell(ranks=8, batch=32, gradients='top_k_2_levels'),
    'top_k_1_small': Cell(ranks=8, batch=32, gradients='top_k_1_small'),
    'top_k_1_sharded': Cell(ranks=8, batch=32, gradients='top_k_1_levels', sharded=True),
    'sparser32': Cell(ranks=8, batch=32, gradients='top_k_003'),
    'hylo32': Cell(ranks=8, batch=32, gradients='hylo'),
    'rounds4': Cell(ranks=8, batch=32, steps='4', overlapped=True, coding='linear8', rate_batch='ALL_RANKS'),
    'rounds8': Cell(ranks=8, batch=32, steps='8', overlapped=True, coding='linear8', rate_batch='ALL_RANKS'),
    'rounds4-64': Cell(ranks=8, batch=64, steps='4', overlapped=True, coding='linear8', rate_batch='ALL_RANKS'),
    'rounds8-64': Cell(ranks=8, batch=64, steps='8', overlapped=True, coding='linear8', rate_batch='ALL_RANKS'),
    'rounds16_of_2': Cell(ranks=2, batch=32, steps='16', outer='1:0.3', coding='top_k_1_all'),  # the fewest bytes
    'rounds4-own': Cell(ranks=8, batch=32, steps='4', overlapped=True, coding='linear8', rate_batch='OWN'),
    'rounds8-own': Cell(ranks=8, batch=32, steps='8', overlapped=True, coding='linear8', rate_batch='OWN'),
}
LENGTHS = ['1', '2', '4', '8', '16', '32', '64']
TABLES = {
    'first': with_dense(product(batch=[32, 64], steps=['4', '8'], rate_batch=['ALL_RANKS', 'OWN'], overlapped=[True],
                                coding=['linear8'])),
    'overlap': with_dense(product(batch=[32], steps=['4', '8', '16'], overlapped=[False, True])),
    'batch': with_dense(product(steps=['4', '8'], batch=[32, 64, 128, 256], overlapped=[True])),
    'coding': with_dense(product(batch=[32], steps=['4', '8'], overlapped=[True], coding=list(CODINGS))),
    'gradients': with_dense(product(batch=[32, 64], gradients=list(GRADIENT_CODINGS)[1:])),
    'outer': with_dense(product(batch=[32], steps=['8', '32'], outer=['1:0', '1:0.3', '1:0.6', '1:0.9', '0.7:0', '0.7:0.3', '0.7:0.6', '0.7:0.9'])),
    'two': with_dense(product(ranks=[2], batch=[32, 128], steps=['16'], outer=['1:0', '1:0.3', '1:0.6'])),
    'period': with_dense(product(ranks=[8, 4, 2], optimizer=['muon', 'sgd'], steps=LENGTHS)),
    'coded': with_dense(product(ranks=[8, 4, 2], optimizer=['muon', 'sgd'], gradients=PLANNED_GRADIENTS)),
}
