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

// copyOf is a copy of the message, or ok is false if it is not copied: it is larger
// than room, or none of protobuf's.
func copyOf(m any, room int) (c replayMessage, ok bool) {
	v2, ok := asProto(m)
	if !ok || proto.Size(v2) > room {
		return c, false
	}
	bytes, err := proto.MarshalOptions{UseCachedSize: true}.Marshal(v2)
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

// room is how large another message may be.
func (r *replay) room(limit int) int { return limit - r.size - frame }

func (r *replay) add(c replayMessage) {
	r.messages = append(r.messages, c)
	r.size += len(c.bytes) + frame
}

// forget lets go of the messages. That CloseSend was called is not forgotten.
func (r *replay) forget() { r.messages, r.size = nil, 0 }
