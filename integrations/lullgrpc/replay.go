package lullgrpc

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// frameBytes is the number of bytes that gRPC adds to each message.
const frameBytes = 5

// A replay holds what a stream has sent so far, for another attempt. Messages are kept as bytes,
// because a sender may fill one message again and again, or share one buffer between messages. A
// second attempt must send the old content.
type replay struct {
	messages []replayMessage
	size     int
	closed   bool // CloseSend was called
}

type replayMessage struct {
	kind  protoreflect.MessageType
	bytes []byte
}

// copyOf returns a copy of the message. ok is false if the message is larger than room, or not
// protobuf's.
func copyOf(m any, room int) (c replayMessage, ok bool) {
	v2, ok := asProto(m)
	if !ok || proto.Size(v2) > room {
		return c, false
	}
	bytes, err := proto.MarshalOptions{UseCachedSize: true}.Marshal(v2)
	if err != nil {
		return c, false // gRPC will return the same error
	}
	return replayMessage{v2.ProtoReflect().Type(), bytes}, true
}

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

// forget drops the messages. It keeps closed.
func (r *replay) forget() { r.messages, r.size = nil, 0 }
