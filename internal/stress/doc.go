// Package stress kills and disturbs the built program under load, alone and as several gateways on one PostgreSQL, and
// checks that nothing is lost or doubled, and that a project server which lies costs the others nothing. It has tests
// only, which take a quarter of an hour: run them with make stress.
package stress
