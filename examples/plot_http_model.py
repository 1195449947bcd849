"""
A model behind HTTP
===================

The model runs elsewhere, and all there is is an address that answers with probabilities. A function
that asks it is wrapped like any other model.
"""

# %%
# A server of a few lines stands for the one you have.

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from askwise import DynamicFeatureSelector, wrap
from askwise.displays import AcquisitionOrderDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
hidden = RandomForestClassifier(30, random_state=0).fit(X[::2].to_numpy(), y[::2])


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(hidden.predict_proba(np.array(rows)).tolist()).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()

# %%
# The function takes rows and gives probabilities. ``fit`` asks in large batches; count them.

address, requests = f"http://127.0.0.1:{server.server_port}", []


def remote(rows):
    rows = np.asarray(rows, dtype=float)
    requests.append(len(rows))
    with urlopen(Request(address, json.dumps(rows.tolist()).encode())) as reply:
        return np.array(json.load(reply))


model = wrap(remote, classes=[0, 1, 2])
selector = DynamicFeatureSelector(model, epistemic=None, random_state=0).fit(X[::2], y[::2])
print(f"fit: {len(requests)} requests, {sum(requests):,} rows")

requests.clear()
case = selector.start()
case.answer(case.suggest().feature, 2.1)
print(f"one answer and the next question: {len(requests)} requests, {sum(requests):,} rows")

# %%
# What is asked of new wines, under a budget of five features:

run = selector.acquire(X[1::2], budget=5)
print(f"right in {(run.predict(-1) == y[1::2]).mean():.0%}")
AcquisitionOrderDisplay.from_trajectory(run)
plt.show()
server.shutdown()
