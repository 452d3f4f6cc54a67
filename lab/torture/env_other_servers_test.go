//go:build servers && !unix

package torture

import "errors"

func findEnv() (string, error) { return "", errors.New("there is no env to set a variable with") }
