package upstream

import "switchyard/internal/domain"

// DecodeFeed lets the fuzz target reach the decoder without a socket.
var DecodeFeed = decodeFeed

// ParsePipeline does likewise.
func ParsePipeline(body []byte) (*domain.PipelineAnswer, error) {
	return parsePipeline(answer{body: body}, nil)
}
