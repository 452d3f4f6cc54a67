package main

func (s *stranger) distribute(root, tree string, set settings) error { return nil }
