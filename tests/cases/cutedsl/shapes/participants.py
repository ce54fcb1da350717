import cutlass.cute as cute


@cute.jit
def step(producer, consumer):
    producer.acquire()
    producer.commit()
    producer.tail()
    consumer.wait()
    consumer.release()
