package lullgrpc

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// frame is what gRPC adds to each message.
const frame = 5

// A replay is what a stream has sent so far, for another attempt. Messages are
// kept as bytes: a sender that fills one message again and again, or one buffer
// that its messages share, breaks no promise that anybody keeps, and a second
// attempt must not send what it holds by then.
type replay struct {
	messages []replayMessage
	size     int
	closed   bool // CloseSend was called
}

type replayMessage struct {
	kind  protoreflect.MessageType
	bytes []byte
}

// copyOf is a copy of the message, or ok is false if it cannot be copied: it is
// none of protobuf's.
func copyOf(m any) (c replayMessage, ok bool) {
	v2, ok := asProto(m)
	if !ok {
		return c, false
	}
	bytes, err := proto.Marshal(v2)
	if err != nil {
		return c, false // gRPC will meet the same error, and return it
	}
	return replayMessage{v2.ProtoReflect().Type(), bytes}, true
}

// message is a message like the one that was copied.
func (c replayMessage) message() (any, error) {
	m := c.kind.New().Interface()
	return m, proto.Unmarshal(c.bytes, m)
}

func asProto(m any) (proto.Message, bool) {
	switch m := m.(type) {
	case proto.Message:
		return m, true
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m), true
	}
	return nil, false
}

// fits tells whether there is room for another message.
func (r *replay) fits(c replayMessage, limit int) bool {
	return r.size+len(c.bytes)+frame <= limit
}

func (r *replay) add(c replayMessage) {
	r.messages = append(r.messages, c)
	r.size += len(c.bytes) + frame
}

// forget lets go of the messages. That CloseSend was called is not forgotten.
func (r *replay) forget() { r.messages, r.size = nil, 0 }
