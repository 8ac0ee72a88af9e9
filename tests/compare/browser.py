"""A headless Chromium that is cut off from every host, for report_in_chromium.py.

It is spoken to by the DevTools protocol over two pipes, so it opens no port: JSON messages, each followed by a zero byte
(https://chromedevtools.github.io/devtools-protocol/). Needs chromium.
"""
import base64
import itertools
import json
import os
import select
import subprocess
import tempfile
import time

FLAGS = ['--headless', '--disable-gpu', '--no-first-run', '--no-default-browser-check', '--disable-extensions',
         '--disable-component-update', '--disable-background-networking', '--disable-sync', '--hide-scrollbars',
         '--host-resolver-rules=MAP * ~NOTFOUND', '--remote-debugging-pipe']
SECONDS = 60  # until an answer counts as missing


class Browser:
    """Starts chromium; `with Browser() as browser:` ends it."""

    def __init__(self, program='chromium'):
        self.profile = tempfile.TemporaryDirectory()
        # The sandbox refuses to run as root.
        root = ['--no-sandbox'] if os.geteuid() == 0 else []
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()

        def as_3_and_4():  # where chromium looks for the pipes; copies first, as 3 and 4 may be in use by the other
            source, target = os.dup(to_read), os.dup(to_write)
            os.dup2(source, 3)
            os.dup2(target, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, *root, f'--user-data-dir={self.profile.name}', 'about:blank'], preexec_fn=as_3_and_4,
            close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.numbers, self.buffer, self.events = itertools.count(1), b'', []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = None
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network', 'Accessibility'):
            self.call(domain + '.enable')

    session = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self._send('Browser.close')
            self.process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def _message(self, until):
        while b'\0' not in self.buffer:
            if not select.select([self.read], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError(f'chromium has not answered for {SECONDS} s')
            piece = os.read(self.read, 1 << 20)
            if not piece:
                raise EOFError(f'chromium has ended with {self.process.wait()}')
            self.buffer += piece
        text, self.buffer = self.buffer.split(b'\0', 1)
        message = json.loads(text)
        if 'method' in message:
            self.events.append((message['method'], message['params']))
            if message['method'] == 'Page.javascriptDialogOpening':  # the page waits until it is closed
                self._send('Page.handleJavaScriptDialog', accept=True)
        return message

    def _send(self, method, **parameters):
        number = next(self.numbers)
        message = {'id': number, 'method': method, 'params': parameters}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.write, json.dumps(message).encode() + b'\0')
        return number

    def call(self, method, **parameters):
        number, until = self._send(method, **parameters), time.monotonic() + SECONDS
        while True:
            answer = self._message(until)
            if answer.get('id') == number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]["message"]}')
                return answer['result']

    def open(self, path, width, scheme):
        """Shows a file; `scheme` is light or dark. Events since then are in self.events."""
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        self.events = []
        self.call('Page.navigate', url='file://' + os.path.abspath(path))
        until = time.monotonic() + SECONDS
        while not any(method == 'Page.loadEventFired' for method, _ in self.events):
            self._message(until)

    def evaluate(self, script):
        result = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(result['exceptionDetails'])
        return result['result'].get('value')

    def screenshot(self, path):
        """The whole page as PNG."""
        size = self.call('Page.getLayoutMetrics')['cssContentSize']
        clip = {'x': 0, 'y': 0, 'width': size['width'], 'height': size['height'], 'scale': 1}
        data = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=True, clip=clip)['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))
