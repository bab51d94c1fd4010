package projectserver_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestTheGatewayGetsTheFirstStoriesOfALargeBoardAndTheirNumber(t *testing.T) {
	files := map[string]string{}
	for n := range 5 {
		files[fmt.Sprintf("1_backlog/%d_a.md", n)] = "a"
		files[fmt.Sprintf("2_current/%d_b.md", n)] = "b"
	}
	s := newStories(t, false, files)
	for query, want := range map[string]string{
		"": "5 5 0", "?items=10": "5 5 0", "?items=7": "5 2 3", "?items=3": "3 0 7", "?items=0": "0 0 10", "?items=-1": "400", "?items=x": "400",
	} {
		status, body, _ := s.ask("GET", "/api/pipeline"+query, "")
		got := fmt.Sprint(status)
		if status == 200 {
			var p struct {
				Stages []struct{ Items []json.RawMessage }
				Left   int
			}
			if err := json.Unmarshal([]byte(body), &p); err != nil {
				t.Fatal(err)
			}
			got = fmt.Sprint(len(p.Stages[0].Items), len(p.Stages[1].Items), p.Left)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}
