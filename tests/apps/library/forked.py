"""forked.py LIBRARY MODEL IMAGE: threads and forked children of one Python process.

Prints the probabilities that each got, as hexadecimal digits, one line each: the process, two of its threads, a child with
a model of its own. Ends with an assertion if a child can use the model of its parent, or hangs.
"""
import ctypes
import multiprocessing
import multiprocessing.pool
import os
import signal
import sys

ringtail = ctypes.CDLL(sys.argv[1])
ringtail.ringtail_open.restype = ctypes.c_void_p
ringtail.ringtail_last_error.restype = ctypes.c_char_p
ringtail.ringtail_open.argtypes = [ctypes.c_char_p, ctypes.c_int]


def open_model():
    model = ctypes.c_void_p(ringtail.ringtail_open(os.fsencode(sys.argv[2]), 2))
    assert model, ringtail.ringtail_last_error()
    return model


def classify(model):
    p = (ctypes.c_double * ringtail.ringtail_class_count(model))()
    if ringtail.ringtail_classify_file(model, os.fsencode(sys.argv[3]), p, len(p)):
        raise OSError(ringtail.ringtail_last_error().decode())
    return " ".join(value.hex() for value in p)


def in_child(of_parent, answer):
    signal.alarm(60)
    try:
        classify(of_parent)
        answer.put("the child used the model of its parent")
    except OSError as error:
        assert "open the network in the child" in str(error), error
        ringtail.ringtail_close(of_parent)
        answer.put(classify(open_model()))


model = open_model()
print(classify(model))
with multiprocessing.pool.ThreadPool(2) as pool:
    print("\n".join(pool.map(lambda _: classify(model), range(2))))
fork = multiprocessing.get_context("fork")
answers = fork.SimpleQueue()
child = fork.Process(target=in_child, args=(model, answers))
child.start()
child.join()
assert child.exitcode == 0, child.exitcode
print(answers.get())
print(classify(model))
ringtail.ringtail_close(model)
