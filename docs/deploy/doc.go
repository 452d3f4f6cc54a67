// Package deploy has what lull proxy is run with: two manifests for Kubernetes, units of systemd and a compose file, with the
// threat model in README.md. It has tests and no code.
//
// The manifests are held against the types of Kubernetes, and compose.yaml against the schema of its specification, in the
// versions that go.mod requires.
package deploy
