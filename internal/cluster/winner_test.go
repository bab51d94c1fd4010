package cluster

import (
	"fmt"
	"testing"
)

// BenchmarkWinner finds the gateway to which a duty belongs among ten. Each gateway does that for every project twice a second.
func BenchmarkWinner(b *testing.B) {
	var live []string
	for i := range 10 {
		live = append(live, fmt.Sprintf("JBSWY3DPEHPK3PXPJBSWY3DP%02d", i))
	}
	all := candidates(live)
	b.ReportAllocs()
	for b.Loop() {
		winner("feed:project-012345", all)
	}
}
