package engine

// Waiting returns how many calls wait for a retry.
func (s *State) Waiting() int { return int(s.Current().memory().waiting.Load()) }
