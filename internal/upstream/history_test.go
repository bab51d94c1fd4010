package upstream_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

func TestAHistoryIsAskedForAsDocumented(t *testing.T) {
	asked := ""
	project := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		fmt.Fprint(w, `{"id":"a","complete":true,"next":9,"moves":[
			{"story_id":"7","from_stage":null,"to_stage":"1_a","at_ms":5,"author":"Ada {","commit":"c","more":[1]},
			{"story_id":"7","from_stage":"1_a","to_stage":"2_b","at_ms":6}]}`)
	})
	part, err := newClient(t).History(t.Context(), project, 7, 2)
	want := upstream.HistoryPart{ID: "a", Complete: true, Next: 9, Moves: []domain.Move{
		{StoryID: "7", To: "1_a", At: time.UnixMilli(5), Author: "Ada {"}, {StoryID: "7", From: "1_a", To: "2_b", At: time.UnixMilli(6)},
	}}
	if err != nil || !reflect.DeepEqual(part, want) || asked != "/api/history?after=7&limit=2" {
		t.Errorf("%+v, %v, asked %s", part, err, asked)
	}
}

func TestAnswersThatAreNoHistoryAreErrors(t *testing.T) {
	move := `{"story_id":"7","from_stage":null,"to_stage":"1_a","at_ms":5}`
	for text, want := range map[string]domain.Code{
		"":                                   domain.BadGateway,
		"[]":                                 domain.BadGateway,
		"{}":                                 domain.BadGateway,
		`{"id":"","complete":true,"next":0}`: domain.BadGateway,
		`{"id":"a","complete":true,"next":-1,"moves":[]}`:                                                domain.BadGateway,
		`{"id":"a","complete":true,"next":1,"moves":[` + move + "," + move + "," + move + `]}`:           domain.BadGateway,
		`{"id":"a","complete":true,"next":1,"moves":[` + strings.Repeat("{},", 300_000) + move + `]}`:    domain.BadGateway,
		`{"id":"a","next":1,"moves":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`:        domain.BadGateway,
		`{"id":"a","complete":true,"next":1,"moves":[{"story_id":"7","to_stage":"1_a","at_ms":"soon"}]}`: domain.BadGateway,
		`{"id":"` + strings.Repeat("x", 300) + `","complete":true,"next":0,"moves":[]}`:                  domain.BadGateway,
	} {
		part, err := newClient(t).History(t.Context(), serve(t, body(text)), 0, 2)
		if domain.CodeOf(err) != want || !reflect.DeepEqual(part, upstream.HistoryPart{}) {
			t.Errorf("%.60s: %.200v, %v", text, part, err)
		}
	}
	_, err := newClient(t).History(t.Context(), serve(t, http.NotFound), 0, 2)
	if domain.CodeOf(err) != domain.NotFound {
		t.Errorf("a server without a history: %v", err)
	}
	if _, err = newClient(t).History(t.Context(), serve(t, bomb()), 0, 2); domain.CodeOf(err) != domain.BadGateway {
		t.Errorf("20 MiB: %v", err)
	}
}
