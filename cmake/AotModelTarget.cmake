# What to generate code for, when aot_model_library() has no TARGET.
include_guard(GLOBAL)

# Sets <result> to, in this order: AOT_MODEL_TARGET (a toolchain file or -D sets it); the target of the CPU that the C
# compiler is told with -mcpu, by CMAKE_C_FLAGS or add_compile_options(), or of CMAKE_SYSTEM_PROCESSOR; `host` in a
# native build; else `c`, plain C for any CPU. Features (-mcpu=cortex-m55+nomve) are left to the checks in the generated C.
function(_aot_model_default_target result)
    set(targets_by_cpu
        cortex-m0=cortex-m0 cortex-m0plus=cortex-m0 cortex-m1=cortex-m0 cortex-m23=cortex-m0
        cortex-m3=cortex-m3
        cortex-m4=cortex-m4
        cortex-m7=cortex-m7
        cortex-m33=cortex-m33 cortex-m35p=cortex-m33
        cortex-m52=cortex-m55 cortex-m55=cortex-m55 cortex-m85=cortex-m55
    )
    if (AOT_MODEL_TARGET)
        set(${result} "${AOT_MODEL_TARGET}" PARENT_SCOPE)
        return()
    endif ()
    get_directory_property(directory_options COMPILE_OPTIONS)
    set(cpu "${CMAKE_SYSTEM_PROCESSOR}")
    if ("${CMAKE_C_FLAGS};${directory_options}" MATCHES "-mcpu=([^ ;+>]+)")
        set(cpu "${CMAKE_MATCH_1}")
    endif ()
    string(TOLOWER "${cpu}" cpu)
    foreach (entry IN LISTS targets_by_cpu)
        if (entry MATCHES "^([^=]+)=(.+)$" AND cpu STREQUAL CMAKE_MATCH_1)
            set(${result} "${CMAKE_MATCH_2}" PARENT_SCOPE)
            return()
        endif ()
    endforeach ()
    if (CMAKE_CROSSCOMPILING)
        set(${result} c PARENT_SCOPE)
    else ()
        set(${result} host PARENT_SCOPE)
    endif ()
endfunction()
