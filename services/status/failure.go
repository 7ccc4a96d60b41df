package main

import "framerun.dev/pkg/safetext"

// maxMessage is the length of a failure's text in code points.
const maxMessage = 1000

// generic is said where nothing better is known, or where what is known is not fit for a client.
const generic = "The generation failed. Please try again; if it fails again, contact support with the run's id."

// sentences are the error codes that workers agree on with the suite, and what a client is told for each.
var sentences = map[string]string{
	"source_not_found":    "The frame could not be found in the Figma file. It may have been moved or deleted.",
	"source_unreadable":   "The frame could not be read. Check that the file is shared with the integration.",
	"source_too_large":    "The frame is too large to be generated in one run. Try a smaller part of it.",
	"source_empty":        "The frame holds nothing that could be generated from.",
	"unsupported_content": "The frame holds content that is not supported yet.",
	"content_policy":      "The request was declined by the content policy.",
	"model_unavailable":   "The generation model is not available at the moment. Please try again later.",
	"model_overloaded":    "The generation model is busy at the moment. Please try again in a few minutes.",
	"quota_exceeded":      "The organization's generation quota is used up.",
	"timeout":             "The generation took too long and was stopped. Please try again.",
	"invalid_result":      "The generated result did not pass its checks. Please try again.",
	"undeliverable":       "The request could not be handed to a worker. Please start the generation again.",
	"internal":            generic,
}

// failureMessage is what a client is told about a failure: the sentence of a known code, else the worker's own text if it is fit,
// else the generic sentence. It is never empty.
func failureMessage(code, text string) string {
	if sentence, ok := sentences[code]; ok {
		return sentence
	}
	if clean, ok := safetext.Clean(text, maxMessage); ok {
		return clean
	}
	return generic
}
