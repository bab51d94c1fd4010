package board

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"switchyard/internal/feed"
)

func TestReal(t *testing.T) {
	for _, f := range Find(os.Getenv("REAL")) {
		b, err := Open(Options{Dir: f.Dir, Layout: f.Layout, Log: slog.Default(), Record: func(...feed.Notification) {}})
		if err != nil {
			t.Fatal(f, err)
		}
		fmt.Println(f)
		for _, s := range b.View().Stages {
			fmt.Println(s.Name, s.Label, len(s.Stories))
			for i, st := range s.Stories {
				if i < 30 {
					fmt.Println("   ", st.ID, "|", st.Name, st.Criteria, st.Blocked)
				}
			}
		}
	}
}
