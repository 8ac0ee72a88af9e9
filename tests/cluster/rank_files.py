"""What ranks of dilated.py tell each other before the program starts: a file for each word, in a folder that all of them see."""
import time


def tell(path, text):
    """Others find the whole text or no file."""
    path.with_suffix('.new').write_text(text)
    path.with_suffix('.new').rename(path)


def heard(path):
    """The text, once it has been told."""
    while not path.exists():
        time.sleep(0.01)
    return path.read_text()
