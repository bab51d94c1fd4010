// Package stress kills and disturbs the built program under load and checks that nothing is lost or doubled. It has tests
// only, which take some minutes: run them with make stress.
package stress
