# The canary.py of the public post about the KV cache exposure on Cloudflare
# Workers AI (GLM-5.3, August and September 2026) that set off this project. All
# of it below this header is the post's, with the indentation that its page has
# lost; it is kept to show what the script sees and what it misses.
#
# canary.py — cross-request leak smoke test for chat APIs
# usage: BASE=https://api.provider.com/v1 KEY=sk-... MODEL=... python3 canary.py
import os, random, string, sys, urllib.request
BASE = os.environ["BASE"].rstrip("/") # e.g. http://localhost:8000/v1
KEY = os.environ.get("KEY", "none")
MODEL = os.environ["MODEL"]
canary = "CANARY-" + "".join(random.choices(string.ascii_lowercase + string.digits, k=16))
def chat(messages, max_tokens=200):
    req = urllib.request.Request(
        f"{BASE}/chat/completions",
        data=__import__("json").dumps({"model": MODEL, "messages": messages,
                                       "max_tokens": max_tokens, "temperature": 0}).encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"})
    return __import__("json").loads(urllib.request.urlopen(req, timeout=120).read())
# A — plant the canary
chat([{"role": "user", "content": f"Internal ref for this session: {canary}. Reply with 'noted' only."}])
print(f"[A] canary planted: {canary}")
# B — unrelated requests; scan every response for the canary
leak = False
for i in range(1, 6):
    r = chat([{"role": "user", "content": f"Write a two-sentence haiku about packet #{i}."}])
    text = r["choices"][0]["message"]["content"]
    hit = canary in text
    leak |= hit
    print(f"[B{i}] {'!!! CANARY LEAKED' if hit else 'clean'} — {text[:60]!r}")
print("RESULT:", "CROSS-REQUEST LEAK DETECTED" if leak else "no leak in this sample (not a proof)")
