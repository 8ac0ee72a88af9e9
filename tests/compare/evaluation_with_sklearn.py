#!/usr/bin/python3
"""Compares what `dogs_vs_cats evaluate --json` says with scikit-learn, from the rows of `--csv`.

Needs python3-sklearn. Everything must be equal to 1e-9: classification report, confusion matrix, ROC AUC, average precision,
top-5 accuracy, calibration curve, and the expected calibration error and Wilson's interval by formulas of their own.

    tests/compare/evaluation_with_sklearn.py --checkpoint runs/first [--data DIR] [--part all]    # a trained network
    tests/compare/evaluation_with_sklearn.py --csv a.csv --json a.json                            # files of `evaluate`
"""
import argparse
import csv
import json
import math
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.preprocessing import label_binarize

LIMIT = 1e-9


def read_rows(path):
    with open(path, newline='', encoding='utf-8') as file:
        rows = list(csv.reader(file))
    names = [column.removeprefix('probability_') for column in rows[0][4:]]
    number = {name: k for k, name in enumerate(names)}
    labels, predicted = (np.array([number[row[i]] for row in rows[1:]]) for i in (1, 2))
    losses = np.array([float(row[3]) for row in rows[1:]])
    return names, labels, predicted, losses, np.array([[float(p) for p in row[4:]] for row in rows[1:]])


class Comparison:
    def __init__(self):
        self.worst, self.compared, self.failed = 0.0, 0, 0

    def check(self, what, ours, theirs):
        ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
        same = ours.shape == theirs.shape
        difference = float(np.max(np.abs(ours - theirs), initial=0)) if same else math.inf
        self.compared += ours.size
        self.worst = max(self.worst, difference)
        if not difference <= LIMIT:
            self.failed += 1
            print(f'{what}: {ours.tolist()} here, {theirs.tolist()} by scikit-learn')


def one_against_rest(scores_of, labels, scores):
    """The mean over classes that have both kinds of images, or of the second of two classes."""
    classes = scores.shape[1]
    truth = np.stack([labels == k for k in range(classes)], axis=1)
    columns = [1] if classes == 2 else range(classes)
    values = [scores_of(truth[:, k], scores[:, k]) for k in columns]
    values = [value for value in values if value is not None]
    return float(np.mean(values)) if values else math.nan


def auc(truth, scores):
    return metrics.roc_auc_score(truth, scores) if 0 < truth.sum() < len(truth) else None


def average_precision(truth, scores):
    return metrics.average_precision_score(truth, scores) if truth.any() else None


def expected_calibration_error(right, confidence, bins=15):
    edges, error = np.linspace(0, 1, bins + 1), 0.0
    for k in range(bins):
        inside = (confidence > edges[k]) & (confidence <= edges[k + 1])
        if k == 0:
            inside |= confidence == 0
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return error


def wilson(correct, n, z=1.959963984540054):
    p = correct / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [(p + z * z / (2 * n) - half) / (1 + z * z / n), (p + z * z / (2 * n) + half) / (1 + z * z / n)]


def compare(ours, names, labels, predicted, losses, probabilities):
    every, c = range(len(names)), Comparison()
    theirs = metrics.classification_report(labels, predicted, labels=every, target_names=names, output_dict=True, zero_division=0)
    for name in names + ['macro avg', 'weighted avg']:
        for key, value in theirs[name].items():
            c.check(f'{name} {key}', ours['classification_report'][name][key], value)
    c.check('accuracy', ours['accuracy'], metrics.accuracy_score(labels, predicted))
    c.check('accuracy of the report', ours['classification_report']['accuracy'], metrics.accuracy_score(labels, predicted))
    c.check('confusion_matrix', ours['confusion_matrix'], metrics.confusion_matrix(labels, predicted, labels=every))
    truth = np.take_along_axis(probabilities, labels[:, None], 1)[:, 0]
    c.check('loss', ours['loss'], losses.mean())
    seen = truth > 1e-300  # below that only the loss column is exact
    c.check('loss per image', losses[seen], -np.log(truth[seen]))
    for key, scores_of in (('roc_auc_score', auc), ('average_precision_score', average_precision)):
        value = one_against_rest(scores_of, labels, probabilities)
        if math.isnan(value) != (ours[key] is None):
            c.failed += 1
            print(f'{key}: {ours[key]} here, {value} by scikit-learn')
        elif not math.isnan(value):
            c.check(key, ours[key], value)
    if len(names) > 2 and len(set(labels)) == len(names):  # scikit-learn's own means
        c.check('roc_auc_score ovr', ours['roc_auc_score'], metrics.roc_auc_score(labels, probabilities, multi_class='ovr'))
        c.check('average_precision_score macro', ours['average_precision_score'],
                metrics.average_precision_score(label_binarize(labels, classes=every), probabilities, average='macro'))
    if len(names) > 5:
        c.check('top_5_accuracy', ours['top_5_accuracy'], metrics.top_k_accuracy_score(labels, probabilities, k=5, labels=every))
    confidence = np.take_along_axis(probabilities, predicted[:, None], 1)[:, 0]
    right = labels == predicted
    # (Sums of softmax values may exceed 1 in the last bit.)
    prob_true, prob_pred = calibration_curve(right, np.minimum(confidence, 1), n_bins=15, pos_label=True) \
        if len(set(right)) == 2 else (None, None)
    if prob_true is not None:
        c.check('calibration_curve prob_true', ours['calibration_curve']['prob_true'], prob_true)
        c.check('calibration_curve prob_pred', ours['calibration_curve']['prob_pred'], prob_pred)
    c.check('expected_calibration_error', ours['expected_calibration_error'], expected_calibration_error(right, confidence))
    c.check('accuracy_interval_95', ours['accuracy_interval_95'], wilson(int(right.sum()), len(labels)))
    return c


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='build/release/bin/dogs_vs_cats')
    parser.add_argument('--checkpoint')
    parser.add_argument('--data')
    parser.add_argument('--part')
    parser.add_argument('--csv')
    parser.add_argument('--json')
    args = parser.parse_args()
    warnings.filterwarnings('ignore', category=metrics._classification.UndefinedMetricWarning)
    with tempfile.TemporaryDirectory() as folder:
        if args.checkpoint:
            args.csv, args.json = f'{folder}/rows.csv', f'{folder}/summary.json'
            more = [x for flag in ('data', 'part') if getattr(args, flag) for x in (f'--{flag}', getattr(args, flag))]
            subprocess.run([args.program, 'evaluate', '--checkpoint', args.checkpoint, '--csv', args.csv, '--json', args.json] + more,
                           check=True)
        elif not (args.csv and args.json):
            parser.error('give --checkpoint, or --csv and --json')
        with open(args.json, encoding='utf-8') as file:
            ours = json.load(file)
        rows = read_rows(args.csv)
    c = compare(ours, *rows)
    print(f'{len(rows[1])} images, {len(rows[0])} classes: {c.compared} numbers, the largest difference is {c.worst:.2g}')
    sys.exit(1 if c.failed else 0)


if __name__ == '__main__':
    main()
