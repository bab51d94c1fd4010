package upstream

// DecodeFeed lets the fuzz target reach the decoder without a socket.
var DecodeFeed = decodeFeed
