//go:build race

package board

// racing is how much smaller the input of a test of costs is under the race detector, which makes it about that much dearer.
const racing = 10
