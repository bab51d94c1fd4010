package upstream

import (
	"context"
	"net"
	"net/http"

	"switchyard/internal/domain"
)

// DecodeFeed lets the fuzz target call the decoder without a socket.
func DecodeFeed(header http.Header, body []byte) (FeedAnswer, error) {
	return decodeFeed(header, body, 0)
}

// ParsePipeline does the same for pipelines.
func ParsePipeline(body []byte) (*domain.PipelineAnswer, error) {
	return parsePipeline(answer{body: body}, nil)
}

// SetDial makes the client connect by dial.
func (c *Client) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.feeds.DialContext, c.others.DialContext = dial, dial
}
