// Package natstest has the tests of package lullnats against a real server, which runs in
// the process of the test. They are a module of their own, so that who uses lullnats
// does not get the server with it.
package natstest
