"""The cells of asynchronous.py: which runs make which table."""
import dataclasses

SPLIT = ['data.split.train.first=0', 'data.split.train.last=2499', 'data.split.validation.first=2500', 'data.split.validation.last=4999']
WORKERS = [1, 4, 8, 16, 32]
SPLITS = [1, 2, 5, 15, 30]
SOFT_WORKERS, SOFT_BATCH, BATCH = 30, 4, 16
EPOCHS = 20
SMALL, DEFAULT = 'apps/studies/asynchronous.textproto', 'apps/studies/sixteen_epochs.textproto'
SECONDS_PER_EPOCH = 1.8  # of a core of a Zen 5, without what a rule or a codec adds
# A worker's step takes 16 ms on average and varies as on a machine that others use, too; the wire costs nothing.
SCRIPT = ['compute.jitter=0.2', 'between_hosts.mbit_per_s=1e6', 'between_hosts.latency_us=0']
# What a batch of 16 is trained with in all tables but the first: SGD without momentum, which asynchrony has (Zheng et al. 2017 have
# none either), so that nothing but the rule differs.
PLAIN = ('optim.sgd.momentum=0', 'optim.learning_rate=0.5')
LINEAR = ('optim.batch_scaling.rule=LINEAR', f'optim.batch_scaling.reference_batch={BATCH}')
MOMENTUM = ('optim.sgd.momentum=0.9', 'optim.learning_rate=0.05')  # a gradient moves the weights as far, in all
RULES = {
    'synchronous, momentum': ('rule=SYNCHRONOUS',),
    'synchronous': ('rule=SYNCHRONOUS',),
    'asynchronous': ('rule=ASYNCHRONOUS',),
    'DC constant': ('rule=DC_CONSTANT',),
    'DC adaptive': ('rule=DC_ADAPTIVE',),
    'stale synchronous 3': ('rule=STALE_SYNC', 'bound=3'),
    'Ringmaster 8': ('rule=RINGMASTER', 'discard_after=8'),
    'DANA': ('rule=DANA',),
}
SLOW = 5  # times as slow
WAITS, ROUND_WAITS = 0.77, 0.91  # mean over the slowest of 8 steps that vary by 0.2; of 8 rounds of 8 such steps


@dataclasses.dataclass(frozen=True)
class Cell:
    label: str
    workers: int
    batch: int = BATCH
    fields: tuple = ()       # of dist.asynchronous; none: no servers
    overrides: tuple = PLAIN  # of the rest of the config
    script: tuple = ()
    epochs: float = EPOCHS
    ms_per_image: float = 1
    network: str = SMALL
    seed: int = 1

    @property
    def name(self):
        kept = ''.join(c if c.isalnum() else '_' for c in self.label)
        return f'{kept}-{self.workers}-{self.seed}'

    def seconds(self):
        return SECONDS_PER_EPOCH * self.epochs * (1 if self.network == SMALL else 6)

    def config(self):
        fields = [f'dist.asynchronous.{field}' for field in ('servers=1', 'overlap=false') + self.fields] if self.fields else []
        return SPLIT + [f'train.batch={self.batch}', f'train.epochs={self.epochs:.3g}', 'train.evaluate_every_epochs=5',
                        f'train.seed={self.seed}', *fields, *self.overrides]

    def events(self):
        return SCRIPT + [f'workers={self.workers}', f'compute.ms_per_image={self.ms_per_image:g}', *self.script]


def soft_sync():
    for weight in ('ONE', 'INVERSE'):
        for n in SPLITS:
            yield Cell(f'softsync {n} {weight}', SOFT_WORKERS, SOFT_BATCH,
                       ('rule=SOFT_SYNC', 'as_published=true', f'splits={n}', f'weight={weight}'), overrides=())


def rule_cell(label, workers, published):
    """One worker is the same with every rule."""
    kind = 'published' if published else 'safe'
    overrides = MOMENTUM + LINEAR if label == 'synchronous, momentum' else PLAIN + (LINEAR if label == 'synchronous' else ())
    if label == 'DANA':  # which has a momentum of 0.9 itself
        overrides = ('optim.sgd.momentum=0', 'optim.learning_rate=0.05')
    if workers == 1:
        label, kind, overrides = 'asynchronous', 'published', PLAIN
    return Cell(f'{label} {kind}', workers, fields=(*RULES[label], f'as_published={str(kind == "published").lower()}'),
                overrides=overrides)


def by_workers(published, columns):
    for workers in columns:
        for label in RULES:
            if label == 'asynchronous' or workers > 1:
                yield rule_cell(label, workers, published)


def many():
    """The same settings for any number of workers: SGD with momentum, added up or by DANA, and a warm-up of four epochs."""
    rules = {'synchronous': (RULES['synchronous'], MOMENTUM + LINEAR),
             'DANA with gaps': (RULES['DANA'] + ('weight=GAP',), ('optim.sgd.momentum=0', 'optim.learning_rate=0.4')),
             'DANA': (RULES['DANA'], ('optim.sgd.momentum=0', 'optim.learning_rate=0.02'))}
    for workers, epochs in ((32, EPOCHS), (8, EPOCHS), (16, EPOCHS), (4, EPOCHS), (32, 4 * EPOCHS), (8, 4 * EPOCHS)):
        for label, (fields, overrides) in rules.items():
            yield Cell(f'{label}, {epochs} epochs', workers, fields=fields, epochs=epochs,
                       overrides=overrides + ('optim.warmup.epochs=4', 'train.evaluate_every_epochs=20'))


def default():
    """The rules that are best with the small network, with the default one at 64 pixels."""
    pixels = ('data.image_size=64', 'train.phase=', 'train.evaluation_image_size=64', 'train.accumulation=1', 'optim.batch_scaling.rule=NONE')
    for label in ('synchronous, momentum', 'DANA', 'DC adaptive', 'asynchronous'):
        cell = rule_cell(label, 8, published=False)
        yield dataclasses.replace(cell, label=f'default network, {label}', network=DEFAULT, epochs=12, overrides=pixels + cell.overrides)


def late():
    for form in ('CONSTANT', 'ADAPTIVE'):
        for epoch in (0, EPOCHS // 2):
            for workers in (8, 32):
                yield Cell(f'DC {form} from epoch {epoch}', workers,
                           fields=(f'rule=DC_{form}', 'as_published=true', f'start_epoch={epoch}'))


def straggler():
    """One of 8 at 20 %, all in the virtual time that the asynchronous run takes for all epochs, in which others see fewer images.

    Per time of a step at full speed: all that give what they have, 7.2 batches; even shares wait for the slow one, 8 / 5; and where
    none is slow, for the one that is late by chance: a step takes 1 / WAITS as long as on average.
    """
    workers, free, even = 8, 7 + 1 / SLOW, 8 / SLOW
    slow = (f'slow={{worker: 3 factor: {SLOW}}}',)
    seconds = 2 * EPOCHS * 2500 / 1000 / ((workers + free) / 2)  # of the asynchronous run that is slow from the middle
    middle = (f'slow={{worker: 3 factor: {SLOW} from_s: {seconds / 2:.3f}}}',)
    synchronous, rounds = PLAIN + LINEAR, PLAIN + ('dist.local.period=8',)
    start, later = 'slow from the start', 'slow from the middle'

    def from_middle(waits):
        return EPOCHS * (workers * waits + even) / (workers + free)

    yield Cell(f'asynchronous, {start}', workers, fields=('rule=ASYNCHRONOUS',), script=slow)
    yield Cell(f'stale synchronous 3, {start}', workers, fields=('rule=STALE_SYNC', 'bound=3'), script=slow, epochs=EPOCHS * even / free)
    yield Cell(f'synchronous, even shares, {start}', workers, overrides=synchronous, script=slow, epochs=EPOCHS * even / free)
    # (The emulator has even shares only; by speed all take as long, at 7.2 / 8 of the full speed.)
    yield Cell('synchronous, shares by speed', workers, overrides=synchronous, ms_per_image=workers / free, epochs=EPOCHS * WAITS)
    yield Cell(f'rounds of 8 steps, {start}', workers, overrides=rounds, script=slow, epochs=EPOCHS * even / free)
    yield Cell(f'asynchronous, {later}', workers, fields=('rule=ASYNCHRONOUS',), script=middle)
    yield Cell(f'synchronous, even shares, {later}', workers, overrides=synchronous, script=middle, epochs=from_middle(WAITS))
    yield Cell(f'rounds of 8 steps, {later}', workers, overrides=rounds, script=middle, epochs=from_middle(ROUND_WAITS))


def optimizers():
    """Each at the rate that it has elsewhere in Ringtail, for the batch of an update."""
    rules = {'SGD': ('optim.sgd.momentum=0.9', 'optim.learning_rate=0.1', *LINEAR),
             'LARS': ('optim.lars={momentum: 0.9 trust: 0.01}', 'optim.learning_rate=1', *LINEAR),
             'Muon': ('optim.muon.momentum=0.9', 'optim.learning_rate=1.4', 'optim.batch_scaling.rule=SQUARE_ROOT',
                      'optim.batch_scaling.reference_batch=256')}
    for workers in (8, 32):
        for name, overrides in rules.items():
            for way in ('SYNCHRONOUS', 'ASYNCHRONOUS'):
                yield Cell(f'{name} {way.lower()}', workers, fields=(f'rule={way}',), overrides=overrides)


def compression():
    """(The network is small: all layers of 1000 elements are coded.)"""
    coded = PLAIN + ('dist.compression.min_elements=1000', 'dist.compression.fall_back=false')
    schemes = {'none': (), 'linear8': ('dist.compression.scheme.linear8={}',), 'Hylo': ('dist.compression.scheme.hylo={}',),
               'top 1 %': ('dist.compression.scheme.top_k={}',),
               'top 1 %, the rest lost': ('dist.compression.scheme.top_k={}', 'dist.compression.error_feedback=false')}
    for name, overrides in schemes.items():
        yield Cell(f'push {name}', 8, fields=('rule=ASYNCHRONOUS',), overrides=(coded if overrides else PLAIN) + overrides)
    for pull in ('BF16', 'DELTA'):
        yield Cell(f'pull {pull}', 8, fields=('rule=ASYNCHRONOUS', f'pull={pull}'))


TABLES = {'soft_sync': list(soft_sync()), 'staleness': list(soft_sync()), 'workers': list(by_workers(True, [8, 32, 1, 16, 4])),
          'straggler': list(straggler()), 'optimizers': list(optimizers()), 'compression': list(compression()),
          'late': list(late()), 'safe': list(by_workers(False, [32, 8])), 'many': list(many()), 'default': list(default())}
