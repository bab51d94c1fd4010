package wire_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// TestWhatCannotBeEditedStaysAsItCame: the stages of one project are in a document with those of others.
func TestWhatCannotBeEditedStaysAsItCame(t *testing.T) {
	stages := []domain.Stage{{Name: "2_current", Items: []domain.Item{{StoryID: "1"}}}}
	for _, text := range []string{
		`[{"items":[{"since_ms":1]}]`, `[{"items":[{"since_ms":1}`, `[{"items":[{"story_id":"1`, `[{"items" [{}]}]`, `[{"items":[{"since_ms":1}]}]]`, ``,
	} {
		if got := wire.WithTimes(json.RawMessage(text), stages); string(got) != text {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

// FuzzWithTimes checks that a project server's JSON is unchanged except for the times of items.
func FuzzWithTimes(f *testing.F) {
	for _, text := range []string{
		`[]`, `[ ]`, `[{"items":[{}]}]`, `[{"items":[{ }, {"a":1}, {}]}]`, ` [{"name":"a","items":[]}] `,
		`[{"name":"a","items":[{"story_id":"1","since_ms":5,"blocked":"x"},{"story_id":"2","since_ms":7}],"own":{"items":[{"since_ms":1}]}}]`,
		"[{\"items\" :\t[ {\"story_id\" : \"]\\\"}{\" , \"blocked_since_ms\":{\"a\":[1,2,{}]} } ],\"name\":\"a\\\\\"}\n,{\"name\":\"b\",\"items\":[{\"story_id\":\"3\"}]}]",
		`[{"name":"a","items":[{"story_id":"1","since_ms":5e2,"x":-1.5,"y":true,"z":null}]}]`,
		`[{"name":"a","items":[{"story_id":"1"}],"items":[{"story_id":"1"},{"story_id":"2"}]}]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var sent []wire.Stage
		var before []map[string]any
		if !utf8.ValidString(text) || json.Unmarshal([]byte(text), &sent) != nil || json.Unmarshal([]byte(text), &before) != nil {
			return
		}
		stages := make([]domain.Stage, len(sent))
		for i := range sent {
			for j, item := range sent[i].Items {
				stages[i].Items = append(stages[i].Items, domain.Item{
					Blocked: wire.Text(item.Blocked), Since: time.UnixMilli(int64(100*i + j)), BlockedSince: time.UnixMilli(int64(1000*i + j + 1)),
				})
			}
		}
		var after []map[string]any
		got := wire.WithTimes(json.RawMessage(text), stages)
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%s becomes %s: %v", text, got, err)
		}
		for i, stage := range before {
			items, _ := stage["items"].([]any)
			if len(items) != len(stages[i].Items) {
				return // the key has another case, or is repeated
			}
			for j := range items {
				item, isObject := items[j].(map[string]any)
				if !isObject {
					continue
				}
				item["since_ms"], item["blocked_since_ms"], item["claim"], item["cost_usd"] = float64(100*i+j), nil, nil, nil
				if stages[i].Items[j].Blocked != "" {
					item["blocked_since_ms"] = float64(1000*i + j + 1)
				}
			}
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s becomes %s", text, got)
		}
	})
}

func BenchmarkWithTimes(b *testing.B) {
	items := make([]wire.Item, 400)
	for i := range items {
		items[i] = wire.Item{StoryID: fmt.Sprintf("%d_story_login", i), StoryName: fmt.Sprintf("Log in with a passkey %d", i), SinceMS: 1_795_331_164_717}
	}
	list := []wire.Stage{{Name: "2_current", Items: items}}
	raw, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	stages := wire.Stages("", list)
	for b.Loop() {
		wire.WithTimes(raw, stages)
	}
}
