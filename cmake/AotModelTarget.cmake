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

# Sets <result> to `host` and the widest vectors that the C compiler has with the project's flags: the library is compiled
# with those, and without -march that is the oldest processor of the family.
function(_aot_model_host_target result)
    set(vector scalar)
    if (CMAKE_C_COMPILER_ID MATCHES "^(GNU|Clang|AppleClang)$")
        set(vector v4)
        get_directory_property(directory_options COMPILE_OPTIONS)
        string(GENEX_STRIP "${directory_options}" directory_options)
        string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
        separate_arguments(flags NATIVE_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}")
        execute_process(
            COMMAND "${CMAKE_C_COMPILER}" ${flags} ${directory_options} -dM -E -x c "${CMAKE_ROOT}/Modules/DummyCXXFile.cxx"
            OUTPUT_VARIABLE macros
            ERROR_QUIET
        )
        if (macros MATCHES "#define __AVX2__ " AND macros MATCHES "#define __FMA__ ")
            set(vector v8)
        elseif (macros MATCHES "#define __aarch64__ " AND macros MATCHES "#define __ARM_NEON ")
            set(vector neon)
        endif ()
    endif ()
    set(${result} "host,vector=${vector}" PARENT_SCOPE)
endfunction()
