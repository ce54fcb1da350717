import cutlass.cute as cute

@cute.jit
def step(pipe , state) :

  x = 1

  pipe . consumer_wait( state )
  pipe.consumer_release \
      (state)
  if x : pipe.consumer_wait ( state ) # spaced
  while x:

    pipe.consumer_wait(  state,
                      )
