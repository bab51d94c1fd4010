package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// maxParts is the largest number of objects and lists in a pipeline. It bounds what decoding one takes to some 20 MiB.
const maxParts = 200_000

// maxDepth is how deep objects and lists in a pipeline may nest. Many JSON readers end at 1000 levels, some at 256: such an
// answer would take the other projects in the same document with it.
const maxDepth = 100

var errNoPipeline = domain.Errorf(domain.BadGateway, "answer is not a pipeline")

// Pipeline asks a project server for its pipeline. known is its last answer or nil, and is returned itself when
// nothing has changed since. Errors are BadGateway with a message for people, or ctx's own.
func (c *Client) Pipeline(ctx context.Context, p domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	ask := call{kind: "pipeline", path: "/api/pipeline"}
	if known != nil {
		ask.etag = known.ETag
	}
	result := known
	err := c.get(ctx, p, ask, func(a answer) (err error) {
		if a.status == http.StatusOK {
			result, err = parsePipeline(a, known)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// parsePipeline reads an answer whose stages must be what they claim to be, as people look at them; what else the
// server says of them is kept as it came.
func parsePipeline(a answer, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	etag := a.header.Get("ETag")
	if known != nil && known.ETag == etag && bytes.Equal(known.Body, a.body) {
		return known, nil
	}
	if bytes.Count(a.body, []byte("{"))+bytes.Count(a.body, []byte("[")) > maxParts {
		return nil, domain.Errorf(domain.BadGateway, "answer is too large: over %d parts", maxParts)
	}
	if !utf8.Valid(a.body) || nestsOver(a.body, maxDepth) {
		return nil, errNoPipeline
	}
	var outer struct {
		Stages json.RawMessage `json:"stages"`
	}
	if err := json.Unmarshal(a.body, &outer); err != nil {
		return nil, domain.WrapError(domain.BadGateway, err, errNoPipeline.Message)
	}
	var stages []domain.Stage
	if err := json.Unmarshal(outer.Stages, &stages); err != nil {
		return nil, domain.WrapError(domain.BadGateway, err, errNoPipeline.Message)
	}
	if !complete(stages) {
		return nil, errNoPipeline
	}
	body := bytes.Clone(a.body) // which, unlike a.body, is no larger than it must be
	from := bytes.Index(body, outer.Stages)
	return &domain.PipelineAnswer{ETag: etag, Stages: stages, Raw: body[from : from+len(outer.Stages)], Body: body}, nil
}

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
func complete(stages []domain.Stage) bool {
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
