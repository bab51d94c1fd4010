// Package stress kills and disturbs the built program under load and checks that nothing is lost or doubled, and that a project
// server which lies costs the others nothing. It has tests
// only, which take some minutes: run them with make stress.
package stress
