// Package preset holds policies to start from: [InternalService], [ExternalAPI],
// [BackgroundWorker], [CommandLine], [Edge], [PerKey] and [LLM]. docs/which-policy.md chooses among them,
// and says when the zero policy is the right one.
//
// Each is a function that returns plain data. Change what you need:
//
//	policy := preset.ExternalAPI()
//	policy.Attempts = 3
//
// Policy files (package config) name them as internal-service, external-api, background-worker,
// command-line, edge, per-key and llm.
package preset
