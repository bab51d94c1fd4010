package upstream

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"strconv"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

const (
	// maxParts is the largest number of objects and lists in a pipeline, and of records in a feed. It bounds what decoding
	// one takes to some 20 MiB.
	maxParts = 200_000
	// maxDepth is how deep objects and lists may nest. Many JSON readers end at 1000 levels, some at 256: such an answer
	// would take the other projects in the same document with it.
	maxDepth = 100
)

var errManyParts = domain.Errorf(domain.BadGateway, "answer is too large: over %d parts", maxParts)

var seed = maphash.MakeSeed()

// parsePipeline reads an answer. The known fields of its stages must have their types, since people rely on them; unknown
// fields are kept as they came, unless the pipeline exceeds its limits.
func parsePipeline(a answer, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	etag, digest := a.header.Get("ETag"), maphash.Bytes(seed, a.body)
	if known != nil && !known.EventsOnly && known.ETag == etag && known.Digest == digest {
		return known, nil
	}
	if bytes.Count(a.body, []byte("{"))+bytes.Count(a.body, []byte("[")) > maxParts {
		return nil, errManyParts
	}
	if !utf8.Valid(a.body) || nestsOver(a.body, maxDepth) {
		return nil, notAPipeline(errNoPipeline)
	}
	var outer struct {
		Stages json.RawMessage `json:"stages"`
		Left   json.RawMessage `json:"left"`
	}
	if err := json.Unmarshal(a.body, &outer); err != nil {
		return nil, notAPipeline(err)
	}
	var stages []wire.Stage
	if err := json.Unmarshal(outer.Stages, &stages); err != nil {
		return nil, notAPipeline(err)
	}
	if !complete(stages) {
		return nil, notAPipeline(errNoPipeline)
	}
	left, _ := strconv.Atoi(string(outer.Left)) // another server may mean something else by it
	stages, raw, note := limit(stages, outer.Stages, max(left, 0))
	return &domain.PipelineAnswer{ETag: etag, Digest: digest, Stages: wire.Stages(stages), Raw: raw, Note: note}, nil
}

func notAPipeline(cause error) error {
	return domain.WrapError(domain.BadGateway, noPipelineError{cause}, "answer is not a pipeline")
}

// noPipelineError is errNoPipeline with what was found.
type noPipelineError struct{ error }

func (noPipelineError) Is(target error) bool { return target == errNoPipeline }

// nestsOver reports whether JSON nests deeper than limit.
func nestsOver(text []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// complete reports whether what people need of stages is there.
func complete(stages []wire.Stage) bool {
	for _, stage := range stages {
		if stage.Name == "" || stage.Items == nil {
			return false
		}
		for _, item := range stage.Items {
			if item.StoryID == "" {
				return false
			}
		}
	}
	return stages != nil
}
