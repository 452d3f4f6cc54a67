//go:build servers && unix

package torture

import "os/exec"

// findEnv returns the program that runs another one with a variable set.
func findEnv() (string, error) { return exec.LookPath("env") }
