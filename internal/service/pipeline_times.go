package service

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"switchyard/internal/domain"
)

// datedPipeline is an answer with the times that are known of its items.
type datedPipeline struct {
	answer  *domain.PipelineAnswer
	version uint64 // of the project's history
	stages  []domain.Stage
	raw     json.RawMessage
}

// date returns an answer with the times that are known now; last, if these are the same.
func (s *Stays) date(project string, answer *domain.PipelineAnswer, last datedPipeline) datedPipeline {
	_, _ = s.catchUp(context.Background()) // what is not accounted for yet shows the next time
	s.mu.Lock()
	version := s.version(project)
	if last.answer == answer && last.version == version {
		s.mu.Unlock()
		return last
	}
	stages := s.of(project).Times(answer.Stages)
	s.mu.Unlock()
	return datedPipeline{answer: answer, version: version, stages: stages, raw: withTimes(answer.Raw, stages)}
}

func countItems(stages []domain.Stage) (n int) {
	for _, stage := range stages {
		n += len(stage.Items)
	}
	return n
}

// withTimes returns stages as their project server sent them, with the times of their items as they are in dated. What else
// the server says of them stays.
func withTimes(raw json.RawMessage, dated []domain.Stage) json.RawMessage {
	var stages []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &stages); err != nil || len(stages) != len(dated) {
		return raw // made up by a test; the client decodes what servers send in the same way
	}
	b := append(make([]byte, 0, len(raw)+64*countItems(dated)), '[')
	for i, stage := range stages {
		var items []map[string]json.RawMessage
		if err := json.Unmarshal(stage["items"], &items); err != nil || len(items) != len(dated[i].Items) {
			return raw
		}
		list := []byte{'['}
		for j, item := range items {
			known := &dated[i].Items[j]
			item["since_ms"] = strconv.AppendInt(nil, known.SinceMS, 10)
			item["blocked_since_ms"] = json.RawMessage("null")
			if known.Blocked != nil {
				item["blocked_since_ms"] = strconv.AppendInt(nil, cmp.Or(known.BlockedSinceMS, known.SinceMS), 10)
			}
			if j > 0 {
				list = append(list, ',')
			}
			list = appendObject(list, item, "story_id", "story_name", "blocked", "blocked_since_ms", "merge_failure", "since_ms")
		}
		stage["items"] = append(list, ']')
		if i > 0 {
			b = append(b, ',')
		}
		b = appendObject(b, stage, "name", "items")
	}
	return append(b, ']')
}

// appendObject appends a JSON object, the named keys first. It empties fields.
func appendObject(b []byte, fields map[string]json.RawMessage, first ...string) []byte {
	separator := byte('{')
	write := func(key string) {
		value, present := fields[key]
		if !present {
			return
		}
		name, _ := json.Marshal(key) // a string always encodes
		b = append(append(append(append(b, separator), name...), ':'), value...)
		separator = ','
		delete(fields, key)
	}
	for _, key := range first {
		write(key)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		write(key)
	}
	return append(b, '}')
}
