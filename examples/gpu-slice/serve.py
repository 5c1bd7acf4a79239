"""Answers whether a sentence is friendly."""

from fastapi import FastAPI
from transformers import pipeline

app = FastAPI()
classify = pipeline("sentiment-analysis", device=0)


@app.get("/healthz")
def healthz() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/classify")
def answer(text: str) -> dict[str, object]:
    return classify(text)[0]
