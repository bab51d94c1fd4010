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
	// maxParts is the most objects and lists in a pipeline, and records in a feed. It limits the memory for decoding
	// one to some 20 MiB.
	maxParts = 200_000
	// maxDepth is how deep objects and lists may nest. Many JSON decoders fail at 1000 levels, some at 256: they would
	// fail on all projects in the same document.
	maxDepth = 100
)

var errManyParts = domain.Errorf(domain.BadGateway, "answer is too large: over %d parts", maxParts)

var seed = maphash.MakeSeed()

// parsePipeline decodes an answer. The known fields of its stages must have their types; unknown fields
// are kept unchanged, unless the pipeline exceeds its limits.
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
	left, _ := strconv.Atoi(string(outer.Left)) // a server that is not ours may mean something else by it
	stages, raw, note := limit(stages, outer.Stages, max(left, 0))
	return &domain.PipelineAnswer{ETag: etag, Digest: digest, Stages: wire.Stages(stages), Raw: raw, Note: note}, nil
}

func notAPipeline(cause error) error {
	return domain.WrapError(domain.BadGateway, noPipelineError{cause}, "answer is not a pipeline")
}

// noPipelineError is errNoPipeline with what was found.
type noPipelineError struct{ error }

func (noPipelineError) Is(target error) bool { return target == errNoPipeline }

// nestsOver reports whether JSON nests more than limit levels.
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

// complete reports whether the stages have all the fields that pages need.
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
