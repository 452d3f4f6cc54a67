// Package sqltest tests package lullsql with PostgreSQL, MariaDB and SQLite. It is a module of its
// own, so that who uses lullsql does not get the drivers of all of them.
package sqltest
